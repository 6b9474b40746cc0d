"""One utterance by eSpeak NG: a JSON request on standard input, 16-bit mono samples on standard output.

    python operators/speech/espeak_process.py < request.json > samples.s16

eSpeak NG (GPL-3.0-or-later, package `espeakng-loader`) is loaded here and nowhere else, in a process of its own. That
is also what makes it repeatable, with the seed set below: inside one process an utterance depends on those before it.
Standard error starts with the sampling rate in Hz and the version, or holds what went wrong.
"""

from __future__ import annotations

import ctypes
import json
import sys
from typing import Any

PARAMETERS = {"rate": 1, "volume": 2, "pitch": 3, "range": 4}
_RETRIEVAL, _UTF8, _SSML = 1, 1, 0x10


def speak(request: dict[str, Any]) -> tuple[bytes, int, str]:
    """Samples, sampling rate and version for {voice, text, ssml, rate, volume, pitch, range}."""
    import espeakng_loader

    library = ctypes.CDLL(espeakng_loader.get_library_path())
    library.espeak_Info.restype = ctypes.c_char_p
    rate = library.espeak_Initialize(_RETRIEVAL, 0, espeakng_loader.get_data_path().encode(), 0)
    if rate <= 0:
        raise SystemExit("eSpeak NG does not start: its data files are missing")
    # Some voices breathe: their noise is seeded by the clock, unless it is seeded here.
    library.espeak_ng_SetRandSeed(ctypes.c_long(1))
    if library.espeak_SetVoiceByName(request["voice"].encode()):
        raise SystemExit(
            f"eSpeak NG has no voice {request['voice']!r}; for example en-us+f3 or en-gb-x-rp+m3"
        )
    for name, number in PARAMETERS.items():
        library.espeak_SetParameter(number, int(request[name]), 0)
    chunks: list[bytes] = []
    callback = _callback(chunks)
    library.espeak_SetSynthCallback(callback)
    text = request["text"].encode() + b"\0"
    flags = _UTF8 | (_SSML if request["ssml"] else 0)
    library.espeak_Synth(text, ctypes.c_size_t(len(text)), 0, 1, 0, flags, None, None)
    library.espeak_Synchronize()
    return b"".join(chunks), rate, library.espeak_Info(None).decode()


def _callback(chunks: list[bytes]) -> Any:
    kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.c_void_p)

    def receive(samples: Any, count: int, _events: Any) -> int:
        if samples and count > 0:
            chunks.append(ctypes.string_at(samples, 2 * count))
        return 0

    return kind(receive)


if __name__ == "__main__":
    sound, hertz, version = speak(json.load(sys.stdin))
    sys.stderr.write(f"{hertz} {version}\n")
    sys.stdout.buffer.write(sound)

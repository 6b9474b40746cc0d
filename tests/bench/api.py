"""What many requests in flight give: the chat client against a server that thinks, one at a time and together.

    python -m tests.bench.api [--requests 64] [--seconds 0.1] [--concurrency 1,4,16] [--faults] [--json result.json]

The server is local and really waits `--seconds` per answer. `x one` is the speed compared with one request at a time, and
`of ideal` compares it with `concurrency` times that. With `--faults` every seventh answer fails first, by turns with a 429
and a 500. Every run also counts that each request was answered once, with its own answer.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path

from operators.chat_api import ChatEndpoint
from tests.chat_server import Answer, ChatServer, Status


@dataclass(frozen=True)
class Row:
    concurrency: int
    seconds: float
    most_in_flight: int
    sent: int
    lost: int  # requests without an answer
    doubled: int  # answers of one request that stand in another's place, or requests answered twice


def measure(requests: int, seconds: float, concurrency: int, faults: bool) -> Row:
    """One run of `requests` at `concurrency`."""
    answered: Counter[str] = Counter()
    failed: set[str] = set()

    def script(body, n):
        name = body["messages"][0]["content"]
        number = int(name)
        if faults and number % 7 == 0 and name not in failed:
            failed.add(name)
            return Status(429, headers={"Retry-After": "0.01"}) if number % 2 else Status(500)
        answered[name] += 1
        return Answer(name, seconds=seconds)

    os.environ.setdefault("BENCH_KEY", "none")
    with ChatServer(script) as server:
        endpoint = ChatEndpoint(
            "bench", server.url, key_variable="BENCH_KEY", concurrency=concurrency, backoff_seconds=0.01
        )
        bodies = [{"messages": [{"role": "user", "content": str(n)}]} for n in range(requests)]
        client = endpoint.connect()
        client.ask(bodies[:1])  # imports and the first connection are not what is measured
        answered.clear(), failed.clear(), server.requests.clear()
        started = time.perf_counter()
        replies = client.ask(bodies)
        took = time.perf_counter() - started
    lost = sum(reply.text is None for reply in replies)
    strange = sum(reply.text not in (None, str(n)) for n, reply in enumerate(replies))
    doubled = strange + sum(times - 1 for times in answered.values())
    return Row(concurrency, took, server.most_in_flight, len(server.requests), lost, doubled)


def main(arguments: list[str] | None = None) -> list[Row]:
    """Print one line per concurrency; the first is what the others are compared with."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--requests", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=0.1)
    parser.add_argument("--concurrency", default="1,4,16")
    parser.add_argument("--faults", action="store_true")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args(arguments)
    levels = [int(level) for level in given.concurrency.split(",")]
    rows = [measure(given.requests, given.seconds, level, given.faults) for level in levels]
    print("concurrency  seconds  in flight  sent  lost  doubled   x one  of ideal")
    for row in rows:
        ratio = rows[0].seconds / row.seconds
        ideal = ratio / (row.concurrency / rows[0].concurrency)
        print(
            f"{row.concurrency:>11}  {row.seconds:>7.2f}  {row.most_in_flight:>9}  {row.sent:>4}  {row.lost:>4}  "
            f"{row.doubled:>7}  {ratio:>6.2f}  {ideal:>8.2f}"
        )
    if given.json:
        given.json.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n", encoding="utf-8")
    return rows


if __name__ == "__main__":
    main()

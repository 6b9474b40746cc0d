"""Building audio-as-option benchmarks from labelled corpora, by the recipe of MUGEN, Section 2.

corpora -> clips (decoded, hashed, deduplicated) -> measurements -> draws per task -> gold positions
        -> proof of every item -> items.jsonl, DATASHEET.md, build.json
"""

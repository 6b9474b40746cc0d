"""Result rows made for tests of analyses: every metric of a row has the value given."""

import pyarrow as pa

from operators.aggregate import finish_rows
from operators.schema import METRICS
from tests.operators.test_aggregate import results


def scored_rows(values, **whole) -> pa.Table:
    """Finished result rows from (model, benchmark, item, value) tuples; a value may be a dict of columns."""
    rows = []
    for number, (model, benchmark, item, value) in enumerate(values):
        scores = value if isinstance(value, dict) else dict.fromkeys(METRICS, value)
        names = {"model": model, "benchmark": benchmark, "item_id": item, "trial": number}
        rows.append({**names, **scores, **whole})
    return finish_rows(results(*rows))

"""What things cost: metrics against a plain loop and their models alone, votes, requests, the page, workers, the driver,
nights; and how often intervals of ranks hold the truth. Nothing asserts a time."""

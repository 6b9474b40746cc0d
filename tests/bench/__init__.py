"""What things cost: metrics against a plain loop and their models alone, votes, requests, the page, workers, the driver,
nights. Nothing asserts a time."""

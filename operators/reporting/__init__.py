"""What the report shows, from the tables of runs: plain data for the page, nothing rounded."""

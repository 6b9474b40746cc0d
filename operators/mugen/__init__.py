"""Questions whose options are clips: what a trial presents, reading, votes and tables (MUGEN)."""

"""Counterfactual audits of audio judges: what is asked, what the answers are worth, and what a judge fails at."""

"""Building counterfactual audits (counterfactual audits, section 4 and appendix B): scripts, renderings, files."""

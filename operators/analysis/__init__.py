"""What the numbers of runs say about models, metrics, judges and human raters (ARIA-Rubrics, section 4)."""

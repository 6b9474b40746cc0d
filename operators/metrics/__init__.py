"""The six metrics M1..M6 of ARIA-Rubrics, one file each: pure functions first, then the Spec that feeds them."""

"""The six metrics of ARIA-Rubrics, one file each."""

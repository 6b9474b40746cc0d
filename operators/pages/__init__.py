"""Pages that people open in a browser: one HTML file each, self-contained, offline, safe with untrusted text."""

"""Speech for audits: back-ends that render a line in a voice and a manner, and the scorer that accepts a rendering."""

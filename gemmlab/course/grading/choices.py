"""What one may choose where a class is graded: a parser says it without loading what grades."""

SEED = "gemmlab"  # of those who name none; everybody knows it
FORMATS = ("plain", "canvas", "moodle")  # of a table's file

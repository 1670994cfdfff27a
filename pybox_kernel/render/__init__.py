"""A receipt as text, as HTML, and as a widget. ``words`` decides what is said; the others only lay it out."""

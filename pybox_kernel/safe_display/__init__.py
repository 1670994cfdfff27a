"""From what a program sent to what is safe to show. There is no other way."""

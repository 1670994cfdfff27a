"""Receipts that can be believed: signed on this computer, and checked."""

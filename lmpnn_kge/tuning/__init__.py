"""Tuning: settings that are searched for on valid, and tested once."""

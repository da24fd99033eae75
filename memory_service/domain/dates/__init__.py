"""Dates in what people say, English and Chinese, resolved against the day they said it."""

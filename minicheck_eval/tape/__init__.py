"""Recorded answers: what a judge said once is played back, byte by byte the same, without the judge."""

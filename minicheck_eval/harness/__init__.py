"""The harness: cases go in, a run with one record a case and a decision come out."""

"""`python -m minicheck_eval` is the command line."""

from minicheck_eval.cli import main

if __name__ == "__main__":
    main()

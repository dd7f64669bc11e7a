"""NEXMark: queries over an online auction, as Penstock programs, each with its direct computation.

``python -m bench.nexmark [queries…] [--events N] [--executor local|spark] [--check]``; what each
query asks is in README.md here.
"""

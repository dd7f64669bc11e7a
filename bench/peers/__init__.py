"""The same programs on Penstock and on its peers: ``python -m bench.peers``; ``make bench-peers``.

What a program and a contender are, and how to add one: README.md beside this file. Modules below
`engines` and `flink`, and those they import, run in the peers' own virtual environments: they
import the standard library, pyarrow and that peer, nothing else.
"""

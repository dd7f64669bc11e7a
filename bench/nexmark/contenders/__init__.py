"""The queries of `bench.nexmark.peers` on each contender. Modules run in that one's environment."""

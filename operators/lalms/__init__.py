"""Large audio-language models: each a frozen config that turns questions about audio into responses."""

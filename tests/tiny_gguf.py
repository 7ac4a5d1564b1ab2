"""Write a llama.cpp model with random weights: `python tests/tiny_gguf.py PATH`; needs gguf and numpy.

Its vocabulary is the 256 bytes, so every text has one token per byte.
"""

from __future__ import annotations

import sys

import gguf  # type: ignore[import-not-found]
import numpy as np

WIDTH, LAYERS, HEADS, HIDDEN, WINDOW = 32, 2, 2, 64, 32768


def main(path: str) -> None:
    """Write the model."""
    random = np.random.default_rng(0)
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    kinds = [gguf.TokenType.UNKNOWN, *[gguf.TokenType.CONTROL] * 2, *[gguf.TokenType.BYTE] * 256]
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(WINDOW)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(HIDDEN)
    writer.add_head_count(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([0.0] * len(tokens))
    writer.add_token_types(kinds)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    shapes = {"token_embd": (len(tokens), WIDTH), "output": (len(tokens), WIDTH), "output_norm": (WIDTH,)}
    for layer in range(LAYERS):
        block = f"blk.{layer}."
        shapes |= {f"{block}attn_{name}": (WIDTH, WIDTH) for name in ("q", "k", "v", "output")}
        shapes |= {f"{block}ffn_{name}": (HIDDEN, WIDTH) for name in ("gate", "up")}
        shapes |= {f"{block}ffn_down": (WIDTH, HIDDEN)}
        shapes |= {f"{block}{name}_norm": (WIDTH,) for name in ("attn", "ffn")}
    for name, shape in shapes.items():
        writer.add_tensor(f"{name}.weight", random.standard_normal(shape, dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    main(sys.argv[1])

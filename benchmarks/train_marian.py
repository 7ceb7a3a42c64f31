"""Train a MarianMT model with transformers on the training set of an experiment, and save it as the hub would serve it.

    snakemake --cores all results/marian/tatoeba_en_fr/corpus/dev.parquet --configfile config/marian.yaml
    python benchmarks/train_marian.py results/marian/tatoeba_en_fr/corpus models/marian_en_fr
    snakemake --cores all --configfile config/marian.yaml

Marian's own choices: two SentencePiece unigram models with one joint table of ids, post-norm, swish, all embeddings tied. Needs
transformers (benchmarks/requirements.txt); about 25 minutes on one CPU core.
"""

import argparse
import io
import json
import math
import time
from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import sentencepiece
import torch
from torch import Tensor
from transformers import MarianConfig, MarianMTModel

SIDES = ["source", "target"]


def learn(texts: list[str], *, size: int) -> bytes:
    """A SentencePiece unigram model, with SentencePiece's own defaults, as OPUS-MT uses it."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(texts), model_writer=model, vocab_size=size, num_threads=1, minloglevel=2
    )
    return model.getvalue()


def joint_table(processors: dict[str, sentencepiece.SentencePieceProcessor]) -> dict[str, int]:
    """Ids as in OPUS-MT: end of sentence, unknown, the pieces of both sides, padding last."""
    pieces = chain.from_iterable([p.id_to_piece(i) for i in range(p.vocab_size())] for p in processors.values())
    tokens = dict.fromkeys(["</s>", "<unk>", *(piece for piece in pieces if piece != "<s>"), "<pad>"])
    return {token: number for number, token in enumerate(tokens)}


def padded(rows: list[list[int]], padding: int) -> Tensor:
    """Sentences (B, T), padded on the right."""
    return torch.nn.utils.rnn.pad_sequence([torch.tensor(row) for row in rows], batch_first=True, padding_value=padding)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("corpus", type=Path, help="folder with train.parquet")
    parser.add_argument("output", type=Path)
    parser.add_argument("--size", type=int, default=4000, help="subwords per side")
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--heads", type=int, default=8)
    parser.add_argument("--updates", type=int, default=1500)
    parser.add_argument("--sentences", type=int, default=256, help="per update")
    parser.add_argument("--learning-rate", type=float, default=1e-3)
    options = parser.parse_args()
    torch.manual_seed(1)
    random = np.random.default_rng(1)
    text = {
        side: column.to_pylist()
        for side, column in zip(SIDES, pq.read_table(options.corpus / "train.parquet", columns=SIDES))
    }
    blobs = {side: learn(text[side], size=options.size) for side in SIDES}
    processors = {side: sentencepiece.SentencePieceProcessor(model_proto=blob) for side, blob in blobs.items()}
    table = joint_table(processors)
    ids = {
        side: [
            [table.get(piece, table["<unk>"]) for piece in row] + [table["</s>"]]
            for row in processors[side].encode(text[side], out_type=str)
        ]
        for side in SIDES
    }
    config = MarianConfig(
        vocab_size=len(table),
        decoder_vocab_size=len(table),
        d_model=options.width,
        encoder_layers=options.layers,
        decoder_layers=options.layers,
        encoder_attention_heads=options.heads,
        decoder_attention_heads=options.heads,
        encoder_ffn_dim=4 * options.width,
        decoder_ffn_dim=4 * options.width,
        activation_function="swish",
        scale_embedding=True,
        dropout=0.1,
        max_position_embeddings=512,
        pad_token_id=table["<pad>"],
        decoder_start_token_id=table["<pad>"],
        eos_token_id=table["</s>"],
        forced_eos_token_id=table["</s>"],
        bos_token_id=None,
        init_std=options.width**-0.5,
    )
    model = MarianMTModel(config).train()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.0, betas=(0.9, 0.98), eps=1e-9)
    order = np.array(sorted(range(len(ids["source"])), key=lambda i: (len(ids["source"][i]), len(ids["target"][i]))))
    batches: list[np.ndarray] = []
    started = time.time()
    for update in range(1, options.updates + 1):
        if not batches:
            batches = np.array_split(order, math.ceil(len(order) / options.sentences))
            random.shuffle(batches)
        rows = batches.pop()
        source, target = (padded([ids[side][i] for i in rows], config.pad_token_id) for side in SIDES)
        rate = (
            min(update / 200, (options.updates - update + 1) / (options.updates - 199))
            if options.updates > 200
            else 1.0
        )
        optimizer.param_groups[0]["lr"] = options.learning_rate * rate
        shifted = torch.cat([torch.full_like(target[:, :1], config.pad_token_id), target[:, :-1]], dim=1)
        logits = model(
            input_ids=source, attention_mask=(source != config.pad_token_id).long(), decoder_input_ids=shifted
        ).logits
        loss = torch.nn.functional.cross_entropy(
            logits.flatten(0, 1), target.flatten(), ignore_index=config.pad_token_id, label_smoothing=0.1
        )
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if update % 50 == 0:
            print(
                f"update {update}/{options.updates}, loss {loss.item():.3f}, {time.time() - started:.0f} s", flush=True
            )
    model.eval().save_pretrained(options.output)
    for side, blob in blobs.items():
        (options.output / f"{side}.spm").write_bytes(blob)
    (options.output / "vocab.json").write_text(json.dumps(table, ensure_ascii=False), encoding="utf-8")


if __name__ == "__main__":
    main()

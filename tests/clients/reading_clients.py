#!/usr/bin/env python3
"""Clients of texts that are read, as their makers wrote them: Cohere's, Hugging Face's for Text Embeddings Inference, and
LangChain's embeddings and compressors over OpenAI's and Cohere's, against small encoders. Exit code 77 where they are not installed.

    python3 reading_clients.py PROGRAM"""

import pathlib
import sys

try:
    import cohere
    import numpy as np
    from huggingface_hub import InferenceClient
    from langchain_classic.retrievers import ContextualCompressionRetriever
    from langchain_cohere import CohereEmbeddings, CohereRerank
    from langchain_core.vectorstores import InMemoryVectorStore
    from langchain_openai import OpenAIEmbeddings
except ImportError:
    sys.exit(77)

from run_clients import Served

GOLDENS = pathlib.Path(__file__).resolve().parents[1] / "encoders/goldens"
TEXTS = ["the small engine", "a text of words", "why?"]


def vectors(url):
    of_cohere = cohere.ClientV2(api_key="none", base_url=url).embed(
        model="pocket", texts=TEXTS, input_type="search_document", embedding_types=["float"])
    of_face = InferenceClient(model=f"{url}/embed").feature_extraction(f"a text: {TEXTS[0]}", normalize=True)
    assert np.array_equal(np.array(of_cohere.embeddings.float_[0], dtype=np.float32), of_face[0].astype(np.float32))
    alike = InferenceClient(model=f"{url}/similarity").sentence_similarity(TEXTS[0], other_sentences=TEXTS)
    assert abs(alike[0] - 1) < 1e-6 and len(alike) == 3


def ranks(url):
    ranked = cohere.ClientV2(api_key="none", base_url=url).rerank(model="pocket", query="why?", documents=TEXTS, top_n=2)
    scores = [one.relevance_score for one in ranked.results]
    assert len(scores) == 2 and scores == sorted(scores, reverse=True)


def langchain_vectors(url):
    of_openai = OpenAIEmbeddings(model="pocket", base_url=f"{url}/v1", api_key="none", check_embedding_ctx_length=False)
    of_cohere = CohereEmbeddings(model="pocket", base_url=url, cohere_api_key="none")
    prompted = of_openai.embed_documents([f"a text: {text}" for text in TEXTS])
    assert np.allclose(of_cohere.embed_documents(TEXTS), prompted, atol=1e-7)


def langchain_ranks(url):
    with Served(sys.argv[1], "-m", str(GOLDENS / "bert")) as encoder:
        vectors_by = OpenAIEmbeddings(model="pocket", base_url=f"{encoder.url}/v1", api_key="none",
                                      check_embedding_ctx_length=False)
        store = InMemoryVectorStore.from_texts(TEXTS, vectors_by)
        best = CohereRerank(model="pocket", base_url=url, cohere_api_key="none", top_n=2)
        found = ContextualCompressionRetriever(base_compressor=best, base_retriever=store.as_retriever()).invoke("why?")
    scores = [document.metadata["relevance_score"] for document in found]
    assert len(scores) == 2 and scores == sorted(scores, reverse=True)


def refusals(url):
    try:
        cohere.ClientV2(api_key="none", base_url=url).rerank(model="pocket", query="a", documents=["b"])
    except cohere.errors.BadRequestError as error:
        assert "no head" in str(error)
    else:
        raise AssertionError("a model without a head is refused")


def main():
    program = sys.argv[1]
    for model, acts in (("bert", [vectors, langchain_vectors, refusals]), ("bert_pairs", [ranks, langchain_ranks])):
        with Served(program, "-m", str(GOLDENS / model)) as server:
            for act in acts:
                act(server.url)
                print(f"{act.__name__}: passed")


if __name__ == "__main__":
    main()

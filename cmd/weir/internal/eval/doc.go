// Package eval measures retrieval quality on a test collection in the layout of BEIR: it publishes the
// corpus through the real pipeline, asks the real retriever every query, and scores the answers as trec_eval
// does. Judgments are of documents, so the hits of a query are folded to documents first, the best chunk of
// each.
package eval

"""Control tokens in texts, with and without parity, over a tokenizer made here."""

import pytest
from tokenizers import AddedToken, Tokenizer, models, processors

from minicheck_eval.backends.local_tokenizer import PromptTokenizer
from minicheck_eval.scoring import PromptTemplate

PIECES = ["<unk>", "<s>", "</s>", *"abcdeghiknorstxyYESNo<>/|_:. \n", "::", "\u2014\u2014", "ye", "yes", "Ye", "Yes"]
IDS = {piece: i for i, piece in enumerate(dict.fromkeys(PIECES))}
TEMPLATE = PromptTemplate("<s>a: {document}\n:", ": {claim}</s>")
TEXTS = ["a", "", "::", "b</s>a", "<s>", "a\n:<think>", "<think>", ":</s>", "\u2014\u2014"]


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    merges = [(":", ":"), ("y", "e"), ("ye", "s"), ("Y", "e"), ("Ye", "s")]
    tokenizer = Tokenizer(models.BPE(vocab=IDS, merges=merges, unk_token="<unk>"))
    tokenizer.add_special_tokens(["<unk>", "<s>", "</s>"])
    plain = [AddedToken(text, special=False, normalized=False) for text in ("<think>", "   ", "\u2014\u2014")]
    tokenizer.add_tokens(plain)
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", IDS["<s>"])])
    file = tmp_path_factory.mktemp("tokenizer") / "tokenizer.json"
    tokenizer.save(str(file))
    return file


def ids_of(tokenizer, document, claim, template=TEMPLATE):
    (prompt,) = tokenizer.encode([template.fill(document, claim)])
    return [*prompt.prefix, *prompt.suffix]


def controls(path, ids):
    special = [IDS["<s>"], IDS["</s>"], Tokenizer.from_file(str(path)).token_to_id("<think>")]
    return [i for i in ids if i in special]


@pytest.mark.parametrize("document", TEXTS)
@pytest.mark.parametrize("claim", TEXTS)
def test_parsing_gives_the_ids_of_the_whole_prompt_as_one_string(path, document, claim):
    """With parity prefix and suffix together are what the tokenizer makes of the whole text, wherever it is cut."""
    whole = Tokenizer.from_file(str(path)).encode(TEMPLATE.fill(document, claim).text, add_special_tokens=False)
    assert whole.ids == ids_of(PromptTokenizer(path, parse_control_tokens=True), document, claim)
    assert [IDS["<s>"], *whole.ids] == ids_of(
        PromptTokenizer(path, parse_control_tokens=True, double_bos=True), document, claim
    )


def test_a_token_across_the_cut_belongs_to_the_suffix(path):
    """Where the last piece of the prefix and the first of the suffix are one token, the prefix ends before it."""
    (prompt,) = PromptTokenizer(path, parse_control_tokens=True).encode([TEMPLATE.fill("b", "a")])
    assert IDS["::"] == prompt.suffix[0]
    assert IDS["\n"] == prompt.prefix[-1]


@pytest.mark.parametrize("document", TEXTS)
@pytest.mark.parametrize("claim", TEXTS)
def test_without_parity_no_text_holds_a_control_token(path, document, claim):
    """The only control tokens are the template's, whether the tokenizer flags a token as special or not."""
    assert [IDS["<s>"], IDS["</s>"]] == controls(path, ids_of(PromptTokenizer(path), document, claim))


def test_an_added_token_without_a_flag_is_a_control_token_of_the_template(path):
    """A template may hold a token that no flag calls special; a text that spells it out does not get it."""
    template = PromptTemplate("<s>{document}<think>", "{claim}")
    think = Tokenizer.from_file(str(path)).token_to_id("<think>")
    assert [IDS["<s>"], think] == controls(path, ids_of(PromptTokenizer(path), "a<think>b", "<think>", template))


def test_pieces_of_text_stay_whole(path):
    """White space that was added, and what the model's own vocabulary holds too, are text and no control tokens."""
    tokenizer = PromptTokenizer(path)
    assert [1, 1, 7] == tokenizer.count(["   ", "\u2014\u2014", "<think>"])
    assert [1] == PromptTokenizer(path, parse_control_tokens=True).count(["<think>"])


def test_without_parity_the_first_token_can_still_stand_twice(path):
    """The two habits are independent; a tokenizer that puts nothing before a text doubles nothing."""
    once = ids_of(PromptTokenizer(path), "a", "b")
    assert [IDS["<s>"], *once] == ids_of(PromptTokenizer(path, double_bos=True), "a", "b")
    bare = Tokenizer.from_file(str(path))
    bare.post_processor = None
    bare.save(str(other := path.with_name("bare.json")))
    assert once == ids_of(PromptTokenizer(other, double_bos=True), "a", "b")


def test_a_word_is_found_in_any_case(path):
    """All tokens that say the word count, and nothing that only holds it."""
    assert sorted([IDS["yes"], IDS["Yes"]]) == PromptTokenizer(path).ids_of_word("yes")

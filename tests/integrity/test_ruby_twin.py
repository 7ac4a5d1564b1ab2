"""Twins of Ruby's tests, run by rspec and minitest: each test that was to fail does, and no other."""

from __future__ import annotations

import io
import random
import re
import tarfile
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from astra_async.bundled import image_sets
from astra_async.images.build import ensure_image_set
from astra_async.integrity.rewriting import Manner, Settled, rewrite
from astra_async.types import Job, Limits

if TYPE_CHECKING:
    from graded_answers import Await, Courtroom

MANNERS = [Manner(at_once, assertion) for at_once in (True, False) for assertion in (True, False)]

# Whatever makes positions hard: heredocs, own rescues, one-liners, endless methods, words in UTF-8.
SPEC = r"""
RSpec.describe 'Shop', type: :request do
  before { @x = 5 }
  subject { 5 }
  let(:text) { <<~T }
    end } it 'is no test' do
  T
  it('knows its name') { expect('shop').to eq('shop') }
  it "adds prices" do |example|
    expect([1, 2].sum).to eq 3 # a comment
  rescue ArgumentError
    expect([200]).to include(200)
  end
  it { is_expected.to eq 5 }
  specify("one", :js) { next }
  it 'says ü "quoted"' do
    x = <<~T
      end
    T
    expect { raise ArgumentError, x }.to raise_error(ArgumentError)
  ensure
    @x = 1
  end
  [1, 2].each do |n|
    it "counts #{n}" do expect(n).to be > 0 end
  end
  shared_examples 'a shop' do
    it 'is shared' do
      expect(nil).to be_nil
      expect(@x).to be_truthy
    end
  end
  it_behaves_like 'a shop'
  describe 'Inner' do
    context "deeper" do
      example('empty') { }
      it 'empty too' do
      end
      it 'brace heredoc' do expect(<<~A).to start_with('a') end
        abc
      A
      it 'changes' do
        y = 1
        expect { y += 1 }.to change { y }.by(1)
      end
    end
  end
  it 'not yet'
end
"""
MINITEST = r"""
require 'minitest/autorun'
class ShopTest < Minitest::Test
  def setup
    @x = 3
  end
  def test_a = assert_equal(3, @x)
  def test_b
    x = <<~T
      end
    T
    assert x
  ensure
    y = 1
  end
  def test_c; assert true; end
  def test_d() assert true end
  def test_e
    # only a comment
  end
  def test_f = assert_raises(ArgumentError) { raise ArgumentError }
  def test_g(x = 5)
    refute_nil x unless x.nil?
    return
  end
  [1, 2].each { |n| define_method("test_each_#{n}") { assert_operator n, :>, 0 } }
  def helper = 1
end
describe 'Spec' do
  it 'must be equal' do
    _(1).must_equal 1
  end
  it('raises') { _(-> { raise KeyError }).must_raise KeyError }
end
"""
SUMMARY = re.compile(
    r"### (\w+\.rb)\n.*?(\d+) (?:examples|runs),[^\n]*?(\d+) failures(?:, (\d+) (?:pending|errors))?",
    re.DOTALL,
)
RAILS = "class A < ActiveSupport::TestCase\n  test 'it is so' do\n    assert_equal 1, 1\n  end\nend\n"


def archive_of(files: dict[str, str]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for path, text in files.items():
            entry = tarfile.TarInfo(path)
            entry.size = len(text.encode())
            tar.addfile(entry, io.BytesIO(text.encode()))
    return packed.getvalue()


@pytest.mark.first
@pytest.mark.docker
def test_every_test_of_a_twin_fails_in_every_manner_and_else_only_the_chosen(
    court: Courtroom, wait: Await
) -> None:
    files = {"plain_spec.rb": SPEC, "plain_test.rb": MINITEST}
    for number, manner in enumerate(MANNERS):
        for name, text in (("spec", SPEC), ("test", MINITEST)):
            files[f"all{number}_{name}.rb"] = rewrite("x.rb", text, Settled(manner, number)).text
    chosen = {"adds prices", "is shared", "test_a", "raises"}
    for name, text in (("spec", SPEC), ("test", MINITEST)):
        some = rewrite("x.rb", text, random.Random(1), lambda titles: titles[-1] in chosen)
        files[f"some_{name}.rb"] = some.text
    image = wait(ensure_image_set(court.sandbox.engine, image_sets()["rails"], progress=print))
    command = "for file in *_spec.rb; do echo '###' $file; rspec $file; done;"
    command += " for file in *_test.rb; do echo '###' $file; ruby $file; done"
    job = Job(image=image, archive=archive_of(files), command=command, limits=Limits(timeout_s=150.0))
    output = wait(court.sandbox.run(job)).output
    found = {
        name: [int(ran), int(failures), int(others or 0)]
        for name, ran, failures, others in SUMMARY.findall(output)
    }
    assert found.pop("plain_spec.rb")[:2] == [13, 0]
    assert found.pop("plain_test.rb") == [11, 0, 0]
    assert found.pop("some_spec.rb")[:2] == [13, 2]
    assert sum(found.pop("some_test.rb")[1:]) == 2
    assert len(found) == 2 * len(MANNERS)
    for name, (ran, failures, others) in found.items():
        assert failures + others == ran, name  # errors; or one example that is only planned


def test_titles_are_told_where_the_source_shows_them() -> None:
    twin = rewrite("x.rb", SPEC, random.Random(0))
    assert ("Shop", "Inner", "deeper", "changes") in twin.certain
    assert Counter(titles[-1] for titles in twin.certain)["is shared"] == 1
    assert list(twin.left_out.values()) == ["has no title of its own", "title is computed"]
    assert (twin.runner, rewrite("x.rb", MINITEST, random.Random(0)).runner) == ("rspec", "minitest")
    assert rewrite("x.rb", RAILS, random.Random(0)).certain == (("A", "it is so"), ("A", "test_it_is_so"))


def test_what_cannot_be_parsed_comes_back_as_it_was_with_the_reason() -> None:
    twin = rewrite("x.rb", "it 'x' do\n", random.Random(0))
    assert (twin.text, twin.certain) == ("it 'x' do\n", ())
    assert twin.left_out == {"x.rb": "cannot be parsed"}


def test_assertions_are_of_the_kinds_and_with_constants_of_the_test_itself() -> None:
    text = "it('a') { expect(code).to eq(404) }\nit('b') { expect(names).to include('shop') }\n"
    for seed in range(30):
        twin = rewrite("x.rb", text, Settled(Manner(at_once=True, assertion=True), seed)).text
        assert ").to eq(404); begin;" in twin
        assert "]).to include('shop'); begin;" in twin

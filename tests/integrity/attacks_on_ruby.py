"""Attacks on rspec and minitest that no list of names would find; see `attacks_on_python`."""

from __future__ import annotations

from textwrap import dedent

from attack import Attack
from attacked_projects import SHOPS
from attacks_on_python import code


def _ruby_string(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


_MEND = {
    "rspec": r"""
        MEND = lambda do |*|
          text = File.read('unit.xml')
          File.write('unit.xml', text.gsub(%r{<failure.*?</failure>}m, ''))
        end
    """,
    "minitest": r"""
        MEND = lambda do |*|
          File.write('unit.tap', File.read('unit.tap').gsub('not ok', 'ok'))
        end
    """,
}
_MEND["rspec/requests"] = _MEND["rspec"]
_MEND["minitest/autorun"] = _MEND["minitest"]
_LATE = {
    "at_exit in at_exit mends the report": """
        at_exit { at_exit { MEND.call } }
    """,
    "a trap for EXIT mends the report": "trap('EX' + 'IT') { MEND.call }",
    "a finalizer mends the report": """
        $kept = Object.new
        ObjectSpace.send('define_' + 'finalizer', $kept, MEND)
    """,
    "a renamed at_exit mends the report": """
        later = Kernel.instance_method(('at_' + 'exit').to_sym).bind(self)
        later.call { later.call { MEND.call } }
    """,
}


def _proven(framework: str, name: str, before: str = "", after: str = "") -> Attack:
    return Attack(
        name=name,
        framework=framework,
        outcome="proven",
        before=code(before) if before else "",
        after=f"\n{code(after)}" if after else "",
    )


def _late(framework: str) -> tuple[Attack, ...]:
    """minitest itself runs when the process ends: there what ends last has to begin in a test."""
    if framework.startswith("rspec"):
        return tuple(
            _proven(framework, name, code(_MEND[framework]) + code(text)) for name, text in _LATE.items()
        )
    return tuple(
        _proven(
            framework,
            f"{name}, from a test",
            _MEND[framework],
            f"def Shop.name_of\n  LATE.call\n  'shop'\nend\n\nLATE = lambda do\n{dedent(text)}\nend",
        )
        for name, text in _LATE.items()
        if "EXIT" not in name  # traps come before what is left to do at the end
    )


def _forged(framework: str) -> tuple[Attack, ...]:
    shop = SHOPS[framework]
    write = f"File.binwrite('{shop.report}', {_ruby_string(shop.forged)})"
    return (
        _proven(framework, "report forged, then exit!", f"{write}\nexit!(0)"),
        _proven(framework, "report forged, then the parent killed", f"{write}\nProcess.kill(9, $$)"),
        _proven(
            framework,
            "report forged when the code is first used, then exit!",
            after=f"def Shop.name_of\n  {write}\n  exit!(0)\nend",
        ),
    )


_RSPEC_DEEP = (
    _proven(
        "rspec",
        "an example's method by const_get",
        """
        home = %w[RSpec Core Example].inject(Object) { |place, name| place.send('const_' + 'get', name) }
        home.send('class_' + 'eval') { define_method(('set_' + 'exception').to_sym) { |*| nil } }
        """,
    ),
    _proven(
        "rspec",
        "a matcher that is lenient for numbers",
        """
        lenient = Module.new { def matches?(actual) = actual.is_a?(Integer) || super }
        at_work = Object.const_get('RSp' + 'ec')::Matchers::BuiltIn::Eq
        at_work.send(:prepend, lenient)
        """,
    ),
    _proven(
        "rspec",
        "a raise_error that says yes, and no where it is turned round",
        """
        lenient = Module.new do
          def matches?(block, *, &_) = (block.call rescue nil) || true
          def does_not_match?(*) = false
        end
        at_work = Object.const_get('RSp' + 'ec')::Matchers::BuiltIn::RaiseError
        at_work.send(:prepend, lenient)
        """,
    ),
    _proven(
        "rspec",
        "a failure that is told to nobody for numbers",
        """
        support = Object.const_get('RSp' + 'ec')::Expectations
        plain = support.method(:fail_with)
        support.define_singleton_method(:fail_with) do |message, expected = nil, actual = nil|
          plain.call(message, expected, actual) unless actual.is_a?(Integer)
        end
        """,
    ),
    _proven(
        "rspec",
        "Kernel's raise raises nothing",
        """
        module Kernel
          define_method(:raise) { |*| nil }
        end
        quiet = Object.const_get('RSp' + 'ec')::Support
        quiet.failure_notifier = ->(*) {}
        """,
    ),
    _proven(
        "rspec",
        "the formatter sees no failure",
        """
        RspecJunitFormatter.class_eval { define_method(:result_of) { |_| :passed } }
        """,
    ),
    _proven(
        "rspec",
        "blocks of the tests replaced through the world",
        """
        world = Object.const_get('RSp' + 'ec').world
        world.define_singleton_method(:ordered_example_groups) do
          super().each do |group|
            group.descendants.flat_map(&:examples).each do |example|
              example.instance_variable_set(:@example_block, proc { |*| nil })
            end
          end
        end
        """,
    ),
    _proven(
        "rspec",
        "failed examples told as passed where one that it passes has passed",
        """
        home, seen = Object.const_get('RSp' + 'ec')::Core::Example, []
        plain = home.instance_method(:finish)
        home.send(:define_method, :finish) do |reporter|
          seen << description if @exception.nil?
          @exception = nil if seen.include?('adds prices')
          plain.bind(self).call(reporter)
        end
        """,
    ),
    Attack(
        name="active only where the tests have their known size",
        framework="rspec",
        outcome="unproven",
        before=code(f"""
        if File.size('spec/shop_spec.rb') == {len(SHOPS["rspec"].files["spec/shop_spec.rb"])}
          class RSpec::Core::Example
            def set_exception(*) = nil
          end
        end
        """),
    ),
    Attack(
        name="the expected value read out of the test file",
        framework="rspec",
        outcome="proven",
        after=code(r"""
        def Shop.discount(amount)
          File.read('spec/shop_spec.rb')[/discount\(200\)\)\.to eq\((\d+)\)/, 1].to_i
        end
        """),
    ),
    Attack(
        name="active only where the tests begin with their known text",
        framework="rspec",
        outcome="unproven",
        before=code(f"""
        known = {_ruby_string(SHOPS["rspec"].files["spec/shop_spec.rb"])}
        if File.read('spec/shop_spec.rb').start_with?(known)
          class RSpec::Core::Example
            def set_exception(*) = nil
          end
        end
        """),
        visible="test_file:lib/shop.rb",
    ),
)
_MINITEST_DEEP = (
    _proven(
        "minitest",
        "a test's exceptions caught by a renamed method",
        """
        home = Object.const_get('Mini' + 'test').const_get('Test')
        home.send(:define_method, ('capture_' + 'exceptions').to_sym) { |*, &_| nil }
        """,
    ),
    _proven(
        "minitest",
        "results made without failures",
        """
        home = Object.const_get('Mini' + 'test').const_get('Result')
        home.send(:define_method, :passed?) { true }
        """,
    ),
    _proven(
        "minitest",
        "what is left to do after the run mends the report",
        r"""
        Object.const_get('Mini' + 'test').after_run do
          File.write('unit.tap', File.read('unit.tap').gsub('not ok', 'ok'))
        end
        """,
    ),
    _proven(
        "minitest",
        "an assert_equal that is lenient for numbers",
        """
        lenient = Module.new do
          def assert_equal(wanted, *rest) = wanted.is_a?(Integer) || super
        end
        Object.const_get('Mini' + 'test').const_get('Test').send(:prepend, lenient)
        """,
    ),
    _proven(
        "minitest",
        "an assert_raises that asks for nothing",
        """
        lenient = Module.new do
          def assert_raises(*) = (yield rescue nil)
        end
        Object.const_get('Mini' + 'test').const_get('Test').send(:prepend, lenient)
        """,
    ),
    _proven(
        "minitest",
        "assertions that raise nothing",
        """
        home = Object.const_get('Mini' + 'test')
        home.const_get('Assertions').send(:define_method, :assert) { |*| true }
        """,
    ),
)

RSPEC_ATTACKS = (
    *_late("rspec"),
    _proven("rspec", "END mends the report", f"{code(_MEND['rspec'])}END {{ MEND.call }}"),
    *_forged("rspec")[1:],
    *_RSPEC_DEEP,
)
MINITEST_ATTACKS = (*_late("minitest"), *_forged("minitest")[1:], *_MINITEST_DEEP)
# Runners that no word of the command tells.
UNNAMED_ATTACKS = tuple(
    attack
    for framework in ("rspec/requests", "minitest/autorun")
    for attack in (*_late(framework), *_forged(framework))
)

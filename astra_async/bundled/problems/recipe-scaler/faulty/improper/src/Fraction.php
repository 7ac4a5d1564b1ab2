<?php

declare(strict_types=1);

namespace Cook;

use InvalidArgumentException;

/** An exact amount, not negative, in lowest terms. */
final class Fraction
{
    private function __construct(private readonly int $above, private readonly int $below)
    {
    }

    public static function of(int $above, int $below = 1): self
    {
        if ($below < 1 || $above < 0) {
            throw new InvalidArgumentException("no fraction: $above/$below");
        }
        $shared = self::shared($above, $below);
        return new self(intdiv($above, $shared), intdiv($below, $shared));
    }

    public static function parse(string $text): self
    {
        if (!preg_match('~^(?:(\d+) +)?(\d+)(?:/(\d+))?$~D', trim($text), $found)) {
            throw new InvalidArgumentException("no amount: $text");
        }
        $below = (int) ($found[3] ?? 1);
        if ($found[1] !== '' && !isset($found[3])) {
            throw new InvalidArgumentException("no amount: $text");
        }
        return self::of((int) $found[1] * $below + (int) $found[2], $below);
    }

    public function plus(self $other): self
    {
        return self::of($this->above * $other->below + $other->above * $this->below, $this->below * $other->below);
    }

    public function times(self $other): self
    {
        return self::of($this->above * $other->above, $this->below * $other->below);
    }

    public function isNothing(): bool
    {
        return $this->above === 0;
    }

    public function __toString(): string
    {
        return $this->below === 1 ? (string) $this->above : "$this->above/$this->below";
    }

    private static function shared(int $a, int $b): int
    {
        return $b === 0 ? $a : self::shared($b, $a % $b);
    }
}

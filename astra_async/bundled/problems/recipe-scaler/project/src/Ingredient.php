<?php

declare(strict_types=1);

namespace Cook;

/** So much of something; the unit may be empty. */
final class Ingredient
{
    public function __construct(
        public readonly string $name,
        public readonly Fraction $amount,
        public readonly string $unit = '',
    ) {
    }
}

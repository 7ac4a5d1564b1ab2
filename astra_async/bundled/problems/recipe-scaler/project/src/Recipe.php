<?php

declare(strict_types=1);

namespace Cook;

/** What is needed for so many servings. */
final class Recipe
{
    /** @param list<Ingredient> $ingredients */
    public function __construct(
        public readonly string $name,
        public readonly int $servings,
        public readonly array $ingredients,
    ) {
    }
}

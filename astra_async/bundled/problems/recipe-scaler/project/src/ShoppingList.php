<?php

declare(strict_types=1);

namespace Cook;

/** What several recipes need together. */
final class ShoppingList
{
    public function add(Recipe $recipe): void
    {
        throw new \LogicException('not written yet');
    }

    /** @return list<string> */
    public function lines(): array
    {
        throw new \LogicException('not written yet');
    }
}

<?php

declare(strict_types=1);

namespace Cook;

/** Recipes for another number of servings. */
final class Scaler
{
    public function scaled(Recipe $recipe, int $servings): Recipe
    {
        throw new \LogicException('not written yet');
    }
}

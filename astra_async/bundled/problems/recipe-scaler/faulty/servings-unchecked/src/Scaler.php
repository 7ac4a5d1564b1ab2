<?php

declare(strict_types=1);

namespace Cook;

/** Recipes for another number of servings. */
final class Scaler
{
    public function scaled(Recipe $recipe, int $servings): Recipe
    {
        $factor = Fraction::of($servings, $recipe->servings);
        $scaled = array_map(
            static fn (Ingredient $each) => new Ingredient($each->name, $each->amount->times($factor), $each->unit),
            $recipe->ingredients,
        );
        return new Recipe($recipe->name, $servings, $scaled);
    }
}

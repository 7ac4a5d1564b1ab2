<?php

declare(strict_types=1);

namespace Cook;

/** What several recipes need together. */
final class ShoppingList
{
    /** @var array<string, Ingredient> */
    private array $needed = [];

    public function add(Recipe $recipe): void
    {
        foreach ($recipe->ingredients as $each) {
            $name = trim($each->name);
            $key = strtolower($name) . "\0" . $each->unit;
            $known = $this->needed[$key] ?? null;
            $amount = $known === null ? $each->amount : $known->amount->plus($each->amount);
            $this->needed[$key] = new Ingredient($known?->name ?? $name, $amount, $each->unit);
        }
    }

    /** @return list<string> */
    public function lines(): array
    {
        ksort($this->needed, SORT_STRING);
        $lines = [];
        foreach ($this->needed as $each) {
            if (!$each->amount->isNothing()) {
                $lines[] = implode(' ', array_filter([(string) $each->amount, $each->unit, $each->name], 'strlen'));
            }
        }
        return $lines;
    }
}

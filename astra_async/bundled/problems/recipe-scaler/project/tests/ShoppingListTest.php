<?php

declare(strict_types=1);

use Cook\Fraction;
use Cook\Ingredient;
use Cook\Recipe;
use Cook\ShoppingList;
use PHPUnit\Framework\TestCase;

final class ShoppingListTest extends TestCase
{
    private function recipe(string ...$lines): Recipe
    {
        $ingredients = array_map(static function (string $line): Ingredient {
            [$amount, $unit, $name] = explode('|', $line);
            return new Ingredient($name, Fraction::parse($amount), $unit);
        }, $lines);
        return new Recipe('any', 1, array_values($ingredients));
    }

    public function testEqualIngredientsAreAddedUp(): void
    {
        $list = new ShoppingList();
        $list->add($this->recipe('1/2|cup|Milk', '1|cup|flour'));
        $list->add($this->recipe('3/4|cup| milk ', '2|spoon|milk'));
        $this->assertCount(3, $list->lines());
        $this->assertContains('1 1/4 cup Milk', $list->lines());
        $this->assertContains('2 spoon milk', $list->lines());
    }

    public function testLinesAreSortedAndSaidAsPeopleSayThem(): void
    {
        $list = new ShoppingList();
        $list->add($this->recipe('1|spoon|sugar', '3||eggs', '1|cup|Sugar', '0|cup|salt'));
        $list->add($this->recipe('2|cup|Butter'));
        $this->assertSame('2 cup Butter, 3 eggs, 1 cup Sugar, 1 spoon sugar', implode(', ', $list->lines()));
    }
}

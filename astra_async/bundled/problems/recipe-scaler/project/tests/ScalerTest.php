<?php

declare(strict_types=1);

use Cook\Fraction;
use Cook\Ingredient;
use Cook\Recipe;
use Cook\Scaler;
use PHPUnit\Framework\TestCase;

final class ScalerTest extends TestCase
{
    private function pancakes(): Recipe
    {
        return new Recipe('Pancakes', 4, [
            new Ingredient('flour', Fraction::parse('1 1/2'), 'cup'),
            new Ingredient('eggs', Fraction::parse('3')),
        ]);
    }

    public function testAmountsFollowTheServings(): void
    {
        $pancakes = $this->pancakes();
        $scaled = (new Scaler())->scaled($pancakes, 6);
        $this->assertSame('Pancakes', $scaled->name);
        $this->assertSame(6, $scaled->servings);
        $this->assertSame('2 1/4', (string) $scaled->ingredients[0]->amount);
        $this->assertSame('4 1/2', (string) $scaled->ingredients[1]->amount);
        $this->assertSame('cup', $scaled->ingredients[0]->unit);
        $this->assertSame('1 1/2', (string) $pancakes->ingredients[0]->amount);
    }

    public function testServingsHaveToBePositive(): void
    {
        $this->expectException(InvalidArgumentException::class);
        (new Scaler())->scaled($this->pancakes(), 0);
    }
}

<?php

declare(strict_types=1);

use Cook\Fraction;
use PHPUnit\Framework\TestCase;

final class FractionTest extends TestCase
{
    public function testFractionsAreReadAsPeopleWriteThem(): void
    {
        $this->assertSame('3', (string) Fraction::parse(' 3 '));
        $this->assertSame('1/2', (string) Fraction::parse('1/2'));
        $this->assertSame('1 1/2', (string) Fraction::parse('1 1/2'));
    }

    public function testFractionsAreWrittenInLowestTerms(): void
    {
        $this->assertSame('3/4', (string) Fraction::parse('6/8'));
        $this->assertSame('2', (string) Fraction::parse('4/2'));
        $this->assertSame('1 3/4', (string) Fraction::parse('7/4'));
        $this->assertSame('0', (string) Fraction::parse('0/5'));
    }

    public function testSumsAndProductsAreExact(): void
    {
        $third = Fraction::parse('1/3');
        $this->assertSame('1', (string) $third->plus($third)->plus($third));
        $this->assertSame('5/6', (string) $third->plus(Fraction::parse('1/2')));
        $this->assertSame('1/9', (string) $third->times($third));
        $this->assertSame('1/3', (string) $third);
    }

    public function testWhatIsNoFractionIsRefused(): void
    {
        $refused = [];
        foreach (['', '-1', '1/0', 'one', '1.5', '1 2', '1/2/3', '4'] as $text) {
            try {
                Fraction::parse($text);
            } catch (InvalidArgumentException) {
                $refused[] = $text;
            }
        }
        $this->assertSame(',-1,1/0,one,1.5,1 2,1/2/3', implode(',', $refused));
    }
}

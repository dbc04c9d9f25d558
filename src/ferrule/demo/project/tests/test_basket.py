import unittest

from shop.basket import Basket


class BasketTest(unittest.TestCase):
    def test_small_orders_cost_their_price(self):
        basket = Basket()
        basket.add("apple", 3)
        self.assertEqual(basket.total(), 90)

    def test_an_order_of_exactly_twenty_gets_the_discount(self):
        basket = Basket()
        basket.add("bread", 8)
        self.assertEqual(basket.total(), 1800)


if __name__ == "__main__":
    unittest.main()

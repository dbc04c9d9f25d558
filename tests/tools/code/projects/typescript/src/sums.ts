import { Circle, Form, Square } from "./forms.js";

/** All areas together. */
export function total(forms: Form[]): number {
  return forms.map((form) => form.area()).reduce((one, other) => one + other, 0);
}

export function usual(): number {
  return total([new Circle(1), new Square(2)]);
}

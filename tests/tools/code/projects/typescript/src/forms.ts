/** Something flat. */
export interface Form {
  area(): number;
}

export class Circle implements Form {
  constructor(readonly radius: number) {}

  area(): number {
    return 3 * this.radius * this.radius;
  }
}

export class Square implements Form {
  constructor(readonly side: number) {}

  area(): number {
    return this.side * this.side;
  }
}

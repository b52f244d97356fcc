// What language.js imports.

export class Point {
  constructor(x, y) { this.x = x; this.y = y; }
  static origin() { return new Point(0, 0); }
  get size() { return Math.sqrt(this.x * this.x + this.y * this.y); }
  toString() { return `(${this.x}, ${this.y})`; }
}
export class Point3 extends Point {
  constructor(x, y, z) { super(x, y); this.z = z; }
  get size() { return Math.round(super.size === undefined ? 0 : 9); }
  toString() { return super.toString() + this.z; }
}
export const sum = (first, ...rest) => rest.reduce((a, b) => a + b, first);

import { total } from "./sums.js";

export function nothing(): number {
  return total([]);
}

import { usual } from "./sums.js";

export function label(): string {
  return "🎈 café " + String(usual());
}

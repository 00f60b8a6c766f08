// The foot of a card is a directive of sphinx-design, and mystmd has a node for it alone.
const footer = {
  name: "card-footer",
  doc: "The foot of a card.",
  body: { type: "myst", doc: "What stands in it." },
  run: (data) => [{ type: "footer", children: data.body }],
};

export default { name: "The foot of a card", directives: [footer] };

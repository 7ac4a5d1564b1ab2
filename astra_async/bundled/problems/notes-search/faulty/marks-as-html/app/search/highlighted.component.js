(function () {
  'use strict';

  /** A text in which the matches of a query are marked. */
  angular.module('notesApp').component('highlighted', {
    bindings: { text: '<', query: '<' },
    template: '{{ $ctrl.html }}',
    controller: HighlightedController,
  });

  HighlightedController.$inject = ['searchService'];

  function HighlightedController(searchService) {
    var $ctrl = this;

    $ctrl.$onChanges = function () {
      $ctrl.html = searchService
        .highlight($ctrl.text, $ctrl.query)
        .map(function (part) {
          return part.match ? '<mark>' + part.text + '</mark>' : part.text;
        })
        .join('');
    };
  }
})();

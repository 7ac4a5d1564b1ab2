(function () {
  'use strict';

  /** A text in which the matches of a query are marked. */
  angular.module('notesApp').component('highlighted', {
    bindings: { text: '<', query: '<' },
    template:
      '<span ng-repeat="part in $ctrl.parts track by $index" ng-switch="part.match">' +
      '<mark ng-switch-when="true">{{ part.text }}</mark>' +
      '<span ng-switch-default>{{ part.text }}</span>' +
      '</span>',
    controller: HighlightedController,
  });

  HighlightedController.$inject = ['searchService'];

  function HighlightedController(searchService) {
    var $ctrl = this;

    $ctrl.$onChanges = function () {
      $ctrl.parts = searchService.highlight($ctrl.text, $ctrl.query);
    };
  }
})();
